package run

import "time"

// SetLimit sets how long a start may take.
func (p *Pool) SetLimit(d time.Duration) { p.limit = d }

// LetGo discards the launcher of a running command, as a cancelled start does.
func (p *Process) LetGo() { p.discard() }
