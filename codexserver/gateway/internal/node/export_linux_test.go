package node

import "context"

// Spreading returns what looks once, without the time for which users must be quiet.
func (n *Node) Spreading() (look func(ctx context.Context)) {
	s := newSpreading(n)
	s.quiet = 0
	return s.look
}
