package run

import "time"

// SetLimit sets how long a start may take.
func (s *Starter) SetLimit(d time.Duration) { s.limit = d }

// LetGo discards the launcher of a running command, as a cancelled start does.
func (s *Starter) LetGo(p *Process) { s.discard(p) }
