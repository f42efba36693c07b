package transcript

// Bound lets a store keep another number of bytes, and returns the number that it kept before.
func Bound(s *Store, max int) (before int) {
	before, s.max = s.max, max
	return before
}

// Used returns how many bytes a store keeps.
func Used(s *Store) int { return s.used }
