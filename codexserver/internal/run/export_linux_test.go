package run

import "time"

// SetLimit sets how long a start may take.
func (s *Starter) SetLimit(d time.Duration) { s.limit = d }
