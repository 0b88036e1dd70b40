//! Short hashes by which secrets are told apart that nobody sees.

use std::fmt;

use ring::hmac;

use super::Secret;

/// Characters of a hash: enough to tell secrets apart, by eye.
const LENGTH: usize = 8;

/// Tells secrets apart without showing them: HMAC-SHA256 under a key that is never shown, so that a short secret cannot be
/// found by trying; cut short.
#[derive(Clone)]
pub struct Fingerprints(hmac::Key);

impl Fingerprints {
    /// Under a key, which everybody has to have who is to say the same of a secret.
    pub fn new(key: &Secret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes()))
    }

    /// The hash of a secret, eight hexadecimal digits. That of another `whose` is another: whoever can have a secret of
    /// their own hashed learns nothing of those of others.
    pub fn of(&self, whose: &str, secret: &Secret) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&(whose.len() as u64).to_be_bytes());
        context.update(whose.as_bytes());
        context.update(secret.expose().as_bytes());
        let mut hash = hex::encode(context.sign());
        hash.truncate(LENGTH);
        hash
    }
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprints")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tells_secrets_apart_and_is_worth_nothing_without_the_key() {
        let (one, other) = (Fingerprints::new(&Secret::new("k")), Fingerprints::new(&Secret::new("l")));
        let pin = Secret::new("1234");
        assert_eq!(one.of("claude", &pin), one.clone().of("claude", &Secret::new("1234")));
        assert_ne!(one.of("claude", &pin), one.of("claude", &Secret::new("1235")));
        assert_ne!(one.of("claude", &pin), one.of("codex", &pin), "one agent's secrets say nothing of another's");
        assert_ne!(one.of("claude", &pin), other.of("claude", &pin));
        assert_ne!(one.of("a", &Secret::new("bc")), one.of("ab", &Secret::new("c")));
        assert_eq!(one.of("claude", &pin).len(), LENGTH);
    }
}
