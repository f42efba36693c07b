package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxSearched    = 8 << 20   // bytes of one file
	maxSearchedAll = 512 << 20 // of all files
	maxHits        = 200
	maxHitText     = 300 // bytes of one line
)

func (t *Turn) search(ctx context.Context, call Call) (Result, error) {
	var args struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Files   string `json:"files"`
	}
	if err := fileArguments(call, &args, "pattern, path, files", "pattern"); err != nil {
		return Result{Output: err.Error()}, nil
	}
	if args.Path == "" {
		args.Path = "."
	}
	s, err := newSearcher(args.Pattern, args.Files)
	if err != nil {
		return Result{Output: err.Error()}, nil
	}
	s.permitted = t.permitted()
	return t.look(ctx, call, args.Path, words("search", args.Pattern, args.Path, args.Files),
		&protocol.ParsedCommand{Type: "search", Cmd: "search " + args.Pattern, Query: &args.Pattern, Path: &args.Path},
		func(bound string) (string, error) {
			path, err := t.near(args.Path)
			if err != nil {
				return "", &fault{what: err.Error()}
			}
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				content, err := t.content(args.Path, bound, isText)
				if err != nil {
					return "", err
				}
				s.lines(args.Path, content)
				return s.text(), nil
			}
			root, err := t.openFolder(args.Path, bound)
			if err != nil {
				return "", err
			}
			defer root.Close()
			prefix := filepath.ToSlash(filepath.Clean(args.Path)) + "/"
			if prefix == "./" {
				prefix = ""
			}
			s.cut = walkFiles(ctx, root.Name(), func(path string) bool {
				if s.match(path) {
					s.file(root, prefix, path)
				}
				return s.hits < maxHits && s.read < maxSearchedAll
			}) == maxWalked || s.read >= maxSearchedAll
			return s.text(), nil
		})
}

// searcher is one search.
type searcher struct {
	expression *regexp.Regexp
	match      func(path string) bool
	permitted  *permission.Set // what may be read
	found      strings.Builder
	hits, read int
	skipped    int // files that are too large, or not text
	cut        bool
}

func newSearcher(pattern, files string) (*searcher, error) {
	s := &searcher{match: func(string) bool { return true }}
	if pattern == "" {
		return nil, &fault{what: "pattern: empty", next: "give the text to find; list shows all files."}
	}
	var err error
	if s.expression, err = regexp.Compile(pattern); err != nil {
		why := err.Error()
		var faulty *syntax.Error
		if errors.As(err, &faulty) {
			why = fmt.Sprintf("%s: %s", faulty.Code, faulty.Expr)
		}
		return nil, &fault{
			what: fmt.Sprintf("pattern: not a regular expression of RE2: %s", why),
			next: fmt.Sprintf("put a backslash before each of ( ) [ ] { } . * + ? that means itself; for the literal "+
				"text use %q.", regexp.QuoteMeta(pattern)),
		}
	}
	if files != "" {
		if s.match, err = glob(files); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// file searches one file of a folder. It does not follow links.
func (s *searcher) file(root *os.Root, prefix, path string) {
	if info, err := root.Lstat(filepath.FromSlash(path)); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := safefile.OpenIn(root, filepath.FromSlash(path), os.O_RDONLY)
	if err != nil {
		s.skipped++
		return
	}
	defer f.Close()
	if inProc, err := safefile.InProc(f); err != nil || inProc || s.permitted.CheckFile(f) != nil {
		s.skipped++
		return
	}
	data, err := f.ReadAll(maxSearched)
	s.read += len(data)
	content := string(data)
	if err != nil || isText(path, content) != nil {
		s.skipped++
		return
	}
	s.lines(prefix+path, content)
}

func (s *searcher) lines(path, content string) {
	number := 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if !s.expression.MatchString(line) {
			continue
		}
		if s.hits == maxHits || s.found.Len() > maxShown {
			s.hits = maxHits
			return
		}
		s.hits++
		fmt.Fprintf(&s.found, "%s:%d:%s\n", strings.ToValidUTF8(path, "\uFFFD"), number, text.Brief(line, maxHitText))
	}
}

func (s *searcher) text() string {
	text := s.found.String()
	if s.hits == 0 {
		text = fmt.Sprintf("no line matches %s\nNext: search for a shorter text, or with (?i) before it to ignore "+
			"case.\n", s.expression)
	}
	if s.hits == maxHits {
		text += "(and perhaps more; use a narrower pattern, folder or files)\n"
	}
	if s.skipped > 0 {
		text += fmt.Sprintf("(%s left out: over %d bytes, not text, or not readable)\n", count(s.skipped, "file"),
			maxSearched)
	}
	if s.cut {
		text += "(not all files were searched; name a folder below)\n"
	}
	return text
}
