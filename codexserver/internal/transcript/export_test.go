package transcript

// Bound lets a store keep another number of bytes, and returns the number that it kept before.
func Bound(s *Store, max int) (before int) {
	before, s.max = s.max, max
	return before
}

// FileSize returns the size of a store's file.
func FileSize(s *Store) int64 { return s.slots.next * pieceSize }

// Used returns how many bytes a store keeps, with what their pieces cost.
func Used(s *Store) int { return s.used }
