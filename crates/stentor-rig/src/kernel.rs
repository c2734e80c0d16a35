//! The two calls of the kernel for which there is no safe function, and nothing else.
