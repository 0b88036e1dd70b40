//! The closed list: client messages that are not judged (policy.md, "How a call is judged", 1).

use crate::message::Kind;

/// Whether a client's message of this method passes without being judged. `tasks/*` only of the caller's own calls,
/// which the gate must see to. What is named like a request is one, also where it asks for no answer.
pub fn passes(kind: Kind, method: &str) -> bool {
    const FEW: [&str; 12] = [
        "initialize",
        "server/discover",
        "ping",
        "subscriptions/listen",
        "logging/setLevel",
        "resources/unsubscribe",
        "prompts/get",
        "completion/complete",
        "tasks/get",
        "tasks/result",
        "tasks/update",
        "tasks/cancel",
    ];
    match kind {
        Kind::Request => FEW.contains(&method) || method.ends_with("/list"),
        Kind::Notification => method.starts_with("notifications/"),
        Kind::Response => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_notifications_pass_as_such() {
        for method in ["notifications/initialized", "notifications/vendor/x"] {
            assert!(passes(Kind::Notification, method) && !passes(Kind::Request, method), "{method}");
        }
        for method in ["tools/list", "resources/templates/list", "tasks/cancel", "ping"] {
            assert!(passes(Kind::Request, method) && !passes(Kind::Notification, method), "{method}");
        }
        for method in ["tools/call", "resources/read", "tasks/run", "vendor/other"] {
            assert!(!passes(Kind::Request, method) && !passes(Kind::Notification, method), "{method}");
        }
    }
}
