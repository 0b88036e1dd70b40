//! Names and lines of the files in an audit folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The folder inside a state folder.
pub(super) const FOLDER: &str = "audit";

/// One file of a chain.
pub(super) struct ChainFile {
    pub(super) number: u32,
    pub(super) path: PathBuf,
}

impl ChainFile {
    /// The name that people see.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

pub(super) fn name(chain: &str, number: u32) -> String {
    format!("{chain}-{number:04}.jsonl")
}

/// All chains of a folder with their files in order.
pub(super) fn chains(folder: &Path) -> io::Result<BTreeMap<String, Vec<ChainFile>>> {
    let mut chains: BTreeMap<String, Vec<ChainFile>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let parsed = path.file_name().and_then(|name| {
            let (chain, number) = name.to_str()?.strip_suffix(".jsonl")?.rsplit_once('-')?;
            Some((chain.to_owned(), number.parse().ok()?))
        });
        if let Some((chain, number)) = parsed {
            chains.entry(chain).or_default().push(ChainFile { number, path });
        }
    }
    for files in chains.values_mut() {
        files.sort_by_key(|file| file.number);
    }
    Ok(chains)
}

/// The chain that a file of this name belongs to.
pub(super) fn chain_of(file: &str) -> Option<String> {
    file.rsplit_once('-').map(|(chain, _)| chain.to_owned())
}

/// The chains whose ends were marked.
pub(super) fn ended(folder: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names: Vec<String> = names.collect::<io::Result<_>>()?;
    Ok(names.iter().filter_map(|name| name.strip_suffix(".ended")).map(str::to_owned).collect())
}

/// Gives each line, without its line feed, and whether it had one.
pub(super) fn each_line(
    path: &Path,
    mut look: impl FnMut(u64, &[u8], bool) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Vec::new();
    let mut number = 0;
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        let whole = line.strip_suffix(b"\n");
        if look(number, whole.unwrap_or(&line), whole.is_some()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        line.clear();
    }
    Ok(ControlFlow::Continue(()))
}

/// What `prev` of the next line says.
pub(super) fn hash(line: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(line)))
}
