package repo

// SetStep makes Apply call f after it has written a temporary file, and after it has
// written or removed a file.
func (p *Plan) SetStep(f func()) { p.step = f }
