//! Server-sent events (WHATWG HTML, section 9.2): framing in both directions.
