//! The closed list: client messages that are not judged (policy.md, "How a call is judged", 1).

/// Whether a client's message of this method passes without being judged. `tasks/*` only of the caller's own calls,
/// which the gate must see to.
pub fn passes(method: &str) -> bool {
    const FEW: [&str; 8] = [
        "initialize",
        "server/discover",
        "ping",
        "subscriptions/listen",
        "logging/setLevel",
        "resources/unsubscribe",
        "prompts/get",
        "completion/complete",
    ];
    FEW.contains(&method)
        || method.ends_with("/list")
        || method.starts_with("tasks/")
        || method.starts_with("notifications/")
}
