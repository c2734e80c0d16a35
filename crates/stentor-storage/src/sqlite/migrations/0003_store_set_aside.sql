-- State 3 of a chunk: set aside, because it could be neither leased nor settled.
CREATE INDEX chunks_set_aside ON chunks (id) WHERE state = 3;
