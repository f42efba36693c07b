package keeper

import "time"

// SetLimit bounds the starts of a pool.
func (p *Pool) SetLimit(d time.Duration) { p.limit = d }
