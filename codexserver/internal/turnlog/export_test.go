package turnlog

// FileSize returns the size of a store's file.
func FileSize(s *Store) int64 { return s.slots.next * pieceSize }
