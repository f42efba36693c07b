package thread

// FileSize returns the size of a store's file.
func FileSize(s *TrailStore) int64 { return s.slots.next * pieceSize }
