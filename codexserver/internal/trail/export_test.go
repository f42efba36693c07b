package trail

// FileSize is how far the file of a store reaches.
func FileSize(s *Store) int64 { return s.slots.next * pieceSize }
