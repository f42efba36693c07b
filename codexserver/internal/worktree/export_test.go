package worktree

// SetStep has f called in Apply when a file was written next to its place, and when it is
// in it or was removed.
func (p *Plan) SetStep(f func()) { p.step = f }
