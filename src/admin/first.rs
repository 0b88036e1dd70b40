//! The approver that the first start makes where none is configured.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::{ApproverConfig, Config, Role, TokenConfig};
use crate::secret::{Secret, TokenHash, random_id};

/// The file in the state folder that holds the first approver's token, so that the command line can use it.
pub const TOKEN_FILE: &str = "approver.token";

/// The approver that stands in for a configured one.
#[derive(Clone, Debug)]
pub struct First {
    /// To be put in the directory: named after the operating-system user, with all roles for all groups.
    pub approver: ApproverConfig,
    /// Their token.
    pub token: Secret,
    /// Where it is kept.
    pub file: PathBuf,
    /// Whether this start made it.
    pub created: bool,
}

/// The first approver, made or read again; none where approvers are configured. Processes that start at the same time
/// on one state folder get the same one.
///
/// # Errors
/// The token cannot be written or read, or others than the owner can read it.
pub fn ensure_first_approver(config: &Config) -> io::Result<Option<First>> {
    if !config.approvers.is_empty() {
        return Ok(None);
    }
    let file = config.state_dir.join(TOKEN_FILE);
    let created = create(&config.state_dir, &file)?;
    let token = read_token(&file)?;
    let approver = ApproverConfig {
        name: user_name(),
        roles: vec![Role::Viewer, Role::Approver, Role::Operator, Role::Auditor],
        groups: vec!["*".into()],
        teams: Vec::new(),
        tokens: vec![TokenConfig { hash: TokenHash::of(token.expose()), expires: None }],
    };
    Ok(Some(First { approver, token, file, created }))
}

/// Reads the token file, which only its owner may read.
fn read_token(file: &Path) -> io::Result<Secret> {
    let mode = fs::metadata(file)?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("{} can be read by others; run `chmod 600` on it", file.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    let text = fs::read_to_string(file)?;
    match text.trim() {
        "" => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} is empty", file.display()))),
        token => Ok(Secret::new(token)),
    }
}

/// Makes the token file with its content in one step, so that nobody ever reads half of it; whether it was made now.
fn create(folder: &Path, file: &Path) -> io::Result<bool> {
    if file.exists() {
        return Ok(false);
    }
    fs::create_dir_all(folder)?;
    let draft = folder.join(random_id(".approver-", 12));
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(out, "{}", random_id("pc_approver_", 32))?;
    out.sync_all()?;
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

/// The name of the user this process runs as.
fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    listed.or_else(|| std::env::var("USER").ok()).filter(|name| !name.is_empty()).unwrap_or(format!("uid-{uid}"))
}
