//! What stands before every handler: whose name the request was sent to, which page sent it, and the headers that keep
//! a browser from doing more with an answer than it should.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderName};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Uri};
use url::Url;

use super::problem::Problem;
use super::{Admin, auth};

/// How long a handler may take; event streams have begun by then.
const HANDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Scripts, styles, pictures and connections from this origin only; no inline code, no frames, no forms that navigate.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Checks a request, runs it in bounded time, and hardens the answer, refusals included.
pub async fn guard(State(admin): State<Arc<Admin>>, request: Request, next: Next) -> Response {
    let mut response = match admin.site().check(request.method(), request.uri(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(()) => match tokio::time::timeout(HANDLE_TIMEOUT, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::unavailable("the gateway did not answer in time; try again").into_response(),
        },
    };
    harden(response.headers_mut());
    response
}

fn harden(headers: &mut HeaderMap) {
    const HEADERS: [(HeaderName, &str); 7] = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The names under which this listener may be spoken to.
pub struct Site {
    /// The bound address.
    pub bound: SocketAddr,
    /// How approvers reach it through a proxy, if they do.
    pub public: Option<Url>,
}

impl Site {
    /// Whether the admin side is reached over https, so that cookies must be.
    pub fn is_https(&self) -> bool {
        self.public.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// Refuses a request that was sent to another name (DNS rebinding) or by another site's page.
    fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = host_of(uri, headers)?;
        if !self.is_host(&host) {
            return Err(Problem::misdirected(
                "this name is not one of the gateway's; use its address, or set listen.admin.public_url",
            ));
        }
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if origin.to_str().is_ok_and(|origin| self.is_origin(origin, &host)) => Ok(()),
            Some(_) => Err(Problem::forbidden("the request comes from another site's page")),
            // Browsers name the origin of every such request; whoever leaves it out must not lean on a cookie.
            None if auth::bearer(headers).is_some() || !headers.contains_key(header::COOKIE) => Ok(()),
            None => Err(Problem::forbidden("a request with a cookie must name its origin")),
        }
    }

    /// Loopback names, the bound address and the public name. An address cannot be rebound, so that any is good where
    /// the listener is bound to all.
    fn is_host(&self, host: &Authority) -> bool {
        let name = host.host();
        if name.eq_ignore_ascii_case("localhost") || self.is_public(name) {
            return true;
        }
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        literal
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip == self.bound.ip() || self.bound.ip().is_unspecified())
    }

    /// The public origin, or the plain one of the name the request was sent to.
    fn is_origin(&self, origin: &str, host: &Authority) -> bool {
        let public = self.public.as_ref().map(|url| url.origin().ascii_serialization());
        if public.is_some_and(|public| public == origin) {
            return true;
        }
        let own = origin.strip_prefix("http://").is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_str()));
        own && !(self.is_https() && self.is_public(host.host()))
    }

    fn is_public(&self, name: &str) -> bool {
        self.public.as_ref().and_then(Url::host_str).is_some_and(|public| public.eq_ignore_ascii_case(name))
    }
}

/// The one name the request was sent to (RFC 9112, section 3.2: exactly one `Host`, which an absolute target overrides).
fn host_of(uri: &Uri, headers: &HeaderMap) -> Result<Authority, Problem> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Problem::bad_request("a request needs exactly one Host header"));
    };
    let host = match uri.authority() {
        Some(target) => Some(target.clone()),
        None => host.to_str().ok().and_then(|host| host.parse().ok()),
    };
    host.filter(|host| !host.as_str().contains('@'))
        .ok_or_else(|| Problem::bad_request("the Host header is not a host and a port"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn site(public: Option<&str>) -> Site {
        Site { bound: "127.0.0.1:7071".parse().unwrap(), public: public.map(|url| url.parse().unwrap()) }
    }

    fn status(site: &Site, method: Method, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        match site.check(&method, &Uri::from_static("/api/v1/me"), &map) {
            Ok(()) => 200,
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let here = site(Some("https://gate.example/"));
        for good in ["127.0.0.1:7071", "localhost:7071", "LOCALHOST:8080", "[::1]:7071", "127.0.0.1", "gate.example"] {
            assert_eq!(status(&here, Method::GET, &[("host", good)]), 200, "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example:7071", "gate.example.evil", "10.0.0.1:7071", "0x7f.1"] {
            assert_eq!(status(&here, Method::GET, &[("host", bad)]), 421, "{bad}");
        }
        assert_eq!(status(&here, Method::GET, &[]), 400);
        assert_eq!(status(&here, Method::GET, &[("host", "localhost"), ("host", "evil.example")]), 400);
        assert_eq!(status(&here, Method::GET, &[("host", "localhost@evil.example")]), 400);
    }

    #[test]
    fn an_address_is_good_where_all_are_bound() {
        let everywhere = Site { bound: "0.0.0.0:7071".parse().unwrap(), public: None };
        assert_eq!(status(&everywhere, Method::GET, &[("host", "10.1.2.3:7071")]), 200);
        assert_eq!(status(&everywhere, Method::GET, &[("host", "evil.example:7071")]), 421);
    }

    #[test]
    fn another_sites_page_changes_nothing() {
        let here = site(None);
        let from = |origin| status(&here, Method::POST, &[("host", "127.0.0.1:7071"), ("origin", origin)]);
        assert_eq!(from("http://127.0.0.1:7071"), 200);
        for foreign in ["http://127.0.0.1:3000", "http://localhost:7071", "https://127.0.0.1:7071", "null", ""] {
            assert_eq!(from(foreign), 403, "{foreign}");
        }
        assert_eq!(status(&here, Method::GET, &[("host", "127.0.0.1:7071"), ("origin", "http://evil.example")]), 200);
    }

    #[test]
    fn an_origin_may_be_left_out_only_without_a_cookie() {
        let here = site(None);
        let host = ("host", "127.0.0.1:7071");
        assert_eq!(status(&here, Method::POST, &[host]), 200);
        assert_eq!(status(&here, Method::POST, &[host, ("cookie", "a=b")]), 403);
        assert_eq!(status(&here, Method::POST, &[host, ("cookie", "a=b"), ("authorization", "Bearer x")]), 200);
        let foreign = [host, ("authorization", "Bearer x"), ("origin", "http://evil.example")];
        assert_eq!(status(&here, Method::POST, &foreign), 403);
    }

    #[test]
    fn a_public_https_name_is_not_good_over_http() {
        let here = site(Some("https://gate.example"));
        let from = |host, origin| status(&here, Method::POST, &[("host", host), ("origin", origin)]);
        assert_eq!(from("gate.example", "https://gate.example"), 200);
        assert_eq!(from("127.0.0.1:7071", "https://gate.example"), 200, "a proxy that rewrites Host");
        assert_eq!(from("gate.example", "http://gate.example"), 403);
    }
}
