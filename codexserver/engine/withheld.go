package engine

// Withholder is implemented by an [Engine] whose configuration keeps files from models. The server then sends none of them
// either: not in what a turn changed, not in a review, and not as an image.
type Withholder interface {
	// Withheld returns what fails for a path, absolute and free of symbolic links, whose content a conversation in the
	// folder cwd does not read. It is nil if there is no such path.
	Withheld(cwd string) func(path string) error
}

// Withheld is that of the engine, or nil.
func Withheld(e Engine, cwd string) func(path string) error {
	if w, is := e.(Withholder); is {
		return w.Withheld(cwd)
	}
	return nil
}
