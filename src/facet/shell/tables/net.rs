//! Programs that reach other machines.

use super::Line;
use super::Operands::Text;

/// `name …`, operands, options. The operands of `curl` are URLs, which `special` reads.
pub(super) const PROGRAMS: &[Line] = &[(
    "curl",
    Text,
    "-f|--fail --fail-with-body -s|--silent -S|--show-error -L|--location -i|--include -I|--head -v|--verbose -k|--insecure \
        -g|--globoff -G|--get -N|--no-buffer -4|--ipv4 -6|--ipv6 --compressed --http1.1 --http2 -0|--http1.0 -n|--netrc! \
        --tlsv1.2 --tlsv1.3 --ssl-reqd --tls-max= --proto= --proto-redir= --noproxy= --path-as-is --raw --basic --digest --no-progress-meter --no-keepalive \
        --tcp-nodelay --http2-prior-knowledge --http3 --retry-all-errors --retry-connrefused --max-filesize= --rate= --speed-limit= --speed-time= \
        --location-trusted --post301 --post302 --post303 -q|--disable -X|--request= -H|--header=@f -A|--user-agent= -e|--referer= -u|--user= \
        -d|--data|--data-ascii=@f --data-raw= --data-binary=@f --data-urlencode=f --json=@f --url-query=f -F|--form=f --form-string= -T|--upload-file=< \
        -m|--max-time= --connect-timeout= --retry= --retry-delay= --retry-max-time= --max-redirs= --limit-rate= -r|--range= \
        -w|--write-out=@f -b|--cookie=< -x|--proxy=! --resolve=! --connect-to=! --unix-socket=! --url=! -o|--output=> -O|--remote-name! \
        -J|--remote-header-name! --output-dir=> -D|--dump-header=> -c|--cookie-jar=> --trace=> --trace-ascii=> --stderr=> \
        -K|--config=<! --netrc-file=< --cacert=< --capath=< -E|--cert=< --key=< --etag-save=> --etag-compare=< --hsts=> \
        --create-dirs! -h|--help -V|--version",
)];
