//! Published weights into our own files.
