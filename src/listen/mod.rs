//! Where clients come in: HTTP and standard input.
