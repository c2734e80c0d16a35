//! An HTTP/2 client for very many small requests over few connections.
