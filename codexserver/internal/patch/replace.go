package patch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A File is what [Replace] makes of a regular file.
type File struct {
	Path string  // relative to the folder, with slashes
	Was  bool    // there is such a file
	Data *string // what it will have, which need not be text; nil removes it
	// Program says whether it becomes executable; nil leaves that as it is, or as it is usual for a new file.
	Program *bool
}

// A NameError reports a name of a repository's own files, in any spelling that a file system takes for it.
type NameError struct{ Path string }

// Error implements error.
func (e *NameError) Error() string {
	return fmt.Sprintf("%q is the name of a file of a repository itself for some system", e.Path)
}

// Replace plans to make, change and remove files of a working tree, of which work is the top. It follows no symbolic link
// below that. Files that are as they will be are not in the plan. Others are those of which something else is there
// than their Was says; with them the plan is not whole. The error is a [*NameError] for what nobody may write.
func Replace(work Folder, files []File) (plan *Plan, others []string, err error) {
	plan = newPlan(work, work.Path)
	for _, f := range files {
		if isOwn(f.Path) {
			return nil, nil, &NameError{f.Path}
		}
		fits, err := plan.replace(f)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", f.Path, err)
		}
		if !fits {
			others = append(others, f.Path)
		}
	}
	return plan, others, plan.show(work)
}

// isOwn reports whether some file system takes one of the names in a path for that of a repository, or for none.
func isOwn(path string) bool {
	return slices.ContainsFunc(components(path), func(name string) bool {
		name = fold(name)
		return name == "" || slices.Contains(repositories, name) || strings.HasPrefix(name, "git~")
	})
}

// replace adds a file to the plan unless it is as it will be, and reports whether what is there fits.
func (p *Plan) replace(f File) (fits bool, err error) {
	info, err := standing(p.dir, f.Path)
	switch {
	case errors.Is(err, errTaken):
		return false, nil
	case err != nil:
		return false, err
	case info == nil && (f.Was || f.Data == nil):
		return f.Data == nil, nil
	case info == nil || f.Was:
	case f.Data == nil || info.Size() != int64(len(*f.Data)):
		return false, nil // without reading it
	}
	file, err := p.named(f.Path)
	if err != nil {
		return false, err
	}
	real := filepath.Join(p.dir, filepath.FromSlash(f.Path))
	file.given, file.after, file.program = true, f.Data, f.Program
	switch {
	case file.entry != file.target || file.target.path != real, (file.before != nil) != (info != nil):
		return false, nil // it was replaced
	case info != nil && equal(file.before, file.after) &&
		(f.Program == nil || *f.Program == (info.Mode()&0o100 != 0)):
		delete(p.byPath, real)
		p.files = p.files[:len(p.files)-1]
		return true, nil
	}
	return (file.before != nil) == f.Was, nil
}

// errTaken is that something else is in the place of a file, or of a folder on the way to it.
var errTaken = errors.New("something else is there")

// standing describes the regular file with a name below a folder, nil if nothing is there. It follows no link.
func standing(dir, name string) (info fs.FileInfo, err error) {
	names := strings.Split(name, "/")
	for i, part := range names {
		dir = filepath.Join(dir, part)
		info, err = os.Lstat(dir)
		switch last := i == len(names)-1; {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case last && !info.Mode().IsRegular(), !last && !info.IsDir():
			return nil, errTaken
		}
	}
	return info, nil
}

// change returns the change of a file as it is shown, without what is not text.
func (f *plannedFile) change() protocol.FileChange {
	switch before, after := shownText(f.before), shownText(f.after); {
	case f.after == nil:
		return protocol.FileChange{Delete: &protocol.FileContent{Content: before}}
	case f.before == nil:
		return protocol.FileChange{Add: &protocol.FileContent{Content: after}}
	default:
		return update(before, after, nil, !isText(f.before) || !isText(f.after))
	}
}

func isText(content *string) bool {
	return content == nil || utf8.ValidString(*content) && !strings.Contains(*content, "\x00")
}

func shownText(content *string) string {
	if content == nil || !isText(content) {
		return ""
	}
	return *content
}

// addWhy adds why a file deserves attention of which its change does not say all.
func (f *plannedFile) addWhy(all map[string]string) {
	add := func(why string, holds bool) {
		if holds {
			addWhy(all, f.shown, why)
		}
	}
	if !isText(f.after) {
		add(fmt.Sprintf("not text, %d bytes, SHA-256 %x", len(*f.after), sha256.Sum256([]byte(*f.after))), true)
	}
	add(whyNotText, !isText(f.before))
	add("it becomes executable", f.program != nil && *f.program)
	add("it is no longer executable", f.program != nil && !*f.program)
	add("it has other names (hard links), which change too", f.hardLinked && f.after != nil)
}
