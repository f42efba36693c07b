package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	maxNamesShown = 500
	maxEntries    = 100_000 // of one folder
	maxWalked     = 200_000 // files below one folder
)

func (t *Turn) list(ctx context.Context, call Call) (Result, error) {
	var args struct {
		Path    string `json:"path"`
		Pattern string `json:"pattern"`
	}
	if err := fileArguments(call, &args, "path, pattern"); err != nil {
		return Result{Output: err.Error()}, nil
	}
	if args.Path == "" {
		args.Path = "."
	}
	return t.look(ctx, call, args.Path, words("list", args.Path, args.Pattern),
		&protocol.ParsedCommand{Type: "list_files", Cmd: "list " + args.Path, Path: &args.Path},
		func(bound string) (string, error) {
			root, err := t.openFolder(args.Path, bound)
			if err != nil {
				return "", err
			}
			defer root.Close()
			if args.Pattern != "" {
				return find(ctx, root.Name(), args.Pattern)
			}
			names, more, err := entries(root)
			if err != nil {
				return "", &fault{what: fmt.Sprintf("%s cannot be listed: %v", args.Path, err)}
			}
			return shownNames(names, more), nil
		})
}

// openFolder opens a folder without following links that change meanwhile. It fails if the folder lies outside
// of bound, unless that is "".
func (t *Turn) openFolder(path, bound string) (*os.Root, error) {
	if strings.ContainsRune(path, 0) {
		return nil, &fault{what: fmt.Sprintf("%q is not a path", path)}
	}
	real, err := t.near(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, t.missing(path)
	}
	if err != nil {
		return nil, &fault{what: fmt.Sprintf("%s cannot be opened: %v", path, err)}
	}
	if err := t.permitted().Check(real); err != nil {
		return nil, &fault{what: err.Error()}
	}
	info, err := os.Lstat(real)
	if err == nil && !info.IsDir() {
		return nil, &fault{what: path + " is a file, not a folder",
			next: "use read to see the file, or give its folder."}
	}
	var root *os.Root
	if err == nil {
		root, err = openRoot(real, bound)
	}
	if err != nil {
		return nil, &fault{what: fmt.Sprintf("%s cannot be opened: %v", path, err)}
	}
	dir, err := root.Open(".")
	if err == nil {
		defer dir.Close()
		var now fs.FileInfo
		var inProc bool
		if now, err = dir.Stat(); err == nil && !os.SameFile(info, now) {
			err = &fault{what: path + " was replaced while it was opened", next: "call it again."}
		} else if inProc, err = safefile.InProc(dir); err == nil && inProc {
			err = &fault{what: path + " is in /proc, which this tool does not read", next: "use shell."}
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// openRoot opens a folder without links in its path, from bound on unless that is "".
func openRoot(path, bound string) (*os.Root, error) {
	if bound == "" {
		return os.OpenRoot(path + string(filepath.Separator) + ".")
	}
	rel, ok := paths.Within(path, bound)
	if !ok {
		return nil, errElsewhere
	}
	outer, err := os.OpenRoot(bound)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	return outer.OpenRoot(rel)
}

// entries returns the names in a folder, sorted, those of folders with a slash. More is true
// if it has too many for one answer.
func entries(root *os.Root) (names []string, more bool, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	list, err := dir.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	for _, e := range list {
		name := e.Name()
		switch {
		case e.IsDir():
			name += "/"
		case e.Type()&fs.ModeSymlink != 0:
			name += " (a link)"
		case !e.Type().IsRegular():
			name += " (not a file)"
		}
		names = append(names, strings.ToValidUTF8(name, "\uFFFD"))
	}
	slices.Sort(names)
	return names, len(list) == maxEntries, nil
}

func shownNames(names []string, more bool) string {
	if len(names) == 0 {
		return "(the folder is empty)"
	}
	left := len(names) - maxNamesShown
	text := strings.Join(names[:min(len(names), maxNamesShown)], "\n") + "\n"
	switch {
	case more:
		text += fmt.Sprintf("(more than %d others; give a pattern)\n", maxEntries-maxNamesShown)
	case left > 0:
		text += fmt.Sprintf("(%d more; give a pattern)\n", left)
	}
	return text
}

// find lists the files below a folder that match a pattern.
func find(ctx context.Context, dir, pattern string) (string, error) {
	match, err := glob(pattern)
	if err != nil {
		return "", err
	}
	var names []string
	walked := walkFiles(ctx, dir, func(path string) bool {
		if match(path) {
			names = append(names, strings.ToValidUTF8(path, "\uFFFD"))
		}
		return len(names) <= maxNamesShown
	})
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamesShown)], "\n") + "\n"
	switch {
	case len(names) == 0:
		text = fmt.Sprintf("no file matches %s\nNext: use a wider pattern such as *NAME*, or list a folder without a "+
			"pattern.\n", pattern)
	case len(names) > maxNamesShown:
		text += "(and more; use a narrower pattern or folder)\n"
	}
	if walked == maxWalked {
		text += fmt.Sprintf("(only the first %d files were looked at; name a folder below)\n", maxWalked)
	}
	return text, nil
}

// glob returns the test of a pattern for paths with slashes.
func glob(pattern string) (func(path string) bool, error) {
	match, err := search.Glob(pattern)
	if err != nil {
		return nil, &fault{what: fmt.Sprintf("%q is not a pattern for names: %v", pattern, err),
			next: `use * for any letters of a name and ** for any folders; a bracket needs its end.`}
	}
	return match, nil
}

// walkFiles calls file for the files below a folder until it returns false, and returns how many
// it has seen.
func walkFiles(ctx context.Context, dir string, file func(path string) bool) (walked int) {
	search.Walk(ctx, dir, func(path string) bool {
		walked++
		return file(path) && walked < maxWalked
	})
	return walked
}
