//! The approvers' side: API, inbox, events.
