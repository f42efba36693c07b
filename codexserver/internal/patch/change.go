package patch

import "fmt"

// Change returns a patch of one file. Plan calls change with the file's content, nil if there
// is no file, and returns its error as it is. A change that returns the same content only
// reads the file.
func Change(path string, change func(before *string) (after string, err error)) *Patch {
	return &Patch{files: []fileOp{{kind: opChange, path: path, change: change}}}
}

// change is [Plan.add] for such a patch.
func (p *Plan) change(file *plannedFile, op fileOp) error {
	after, err := op.change(file.before)
	if err != nil {
		return err
	}
	switch {
	case file.before == nil:
		p.summary.added = append(p.summary.added, op.path)
	case after != *file.before:
		p.summary.modified = append(p.summary.modified, op.path)
	}
	file.after = &after
	return nil
}

// ProcError reports a file of /proc, whose content depends on who reads it: this program must
// not read its own for a model, nor change them.
type ProcError struct {
	// Path is the file as the patch names it.
	Path string
}

// Error implements error.
func (e *ProcError) Error() string { return fmt.Sprintf("%s is in /proc", e.Path) }
