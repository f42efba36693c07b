package keeper

import "time"

// SetLimit bounds the starts of a pool.
func (p *Pool) SetLimit(d time.Duration) { p.limit = d }

// LetGo lets the keeper of a command go while the command runs, as a cancelled start
// does.
func (p *Process) LetGo() { p.pool.discard(p.keeper) }
