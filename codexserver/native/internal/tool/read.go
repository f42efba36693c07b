package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
)

// Limits of what a call that reads returns.
const (
	maxShown    = 40 << 10 // bytes
	maxLines    = 1000
	maxLineText = 1000 // bytes of one line
)

func (t *Turn) read(ctx context.Context, call Call) (Result, error) {
	const known = "path, first_line, last_line"
	var args struct {
		Path  string `json:"path"`
		First *int   `json:"first_line"`
		Last  *int   `json:"last_line"`
	}
	if err := fileArguments(call, &args, known, "path"); err != nil {
		return Result{Output: err.Error()}, nil
	}
	shown := shownRange(args.First, args.Last)
	return t.look(ctx, call, args.Path, words("read", args.Path, shown),
		&protocol.ParsedCommand{Type: "read", Cmd: "read " + args.Path, Name: &args.Path},
		func(bound string) (string, error) {
			content, err := t.content(args.Path, bound, isText)
			if err != nil {
				return "", err
			}
			t.box.sees(t.known(args.Path), content)
			return numbered(args.Path, content, args.First, args.Last)
		})
}

func shownRange(first, last *int) string {
	shown := func(n *int) string {
		if n == nil {
			return ""
		}
		return fmt.Sprint(*n)
	}
	return strings.TrimSuffix("lines "+shown(first)+"-"+shown(last), "lines -")
}

// errElsewhere is the error of a path that led into the working folder before.
var errElsewhere = errors.New("it leads out of the working folder now")

// content reads a file that passes a check. It fails if the file lies outside of bound, unless that is "".
func (t *Turn) content(path, bound string, check func(path, content string) error) (content string, err error) {
	work, err := t.box.folder(t.Cwd)
	if err != nil {
		return "", &fault{what: err.Error()}
	}
	plan, err := patch.Edit(work, t.Cwd, path, func(before *string) (string, error) {
		if before == nil {
			return "", t.missing(path)
		}
		content = *before
		return content, check(path, content)
	})
	if err == nil && bound != "" && !plan.Within([]string{bound}) {
		return "", &fault{what: fmt.Sprintf("%s: %v", path, errElsewhere)}
	}
	return content, t.explain(path, err)
}

func isText(path, content string) error {
	if strings.ContainsRune(content, 0) || !utf8.ValidString(content) {
		return &fault{what: fmt.Sprintf("%s is not UTF-8 text", path),
			next: "look at it with a program that knows its format, through shell."}
	}
	return nil
}

// explain returns the error of a plan as a [*fault].
func (t *Turn) explain(path string, err error) error {
	var own *fault
	var kind *safefile.KindError
	var size *safefile.SizeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &kind) && kind.Mode.IsDir():
		return &fault{what: path + " is a folder", next: "give the path of a file; list shows the folder."}
	case errors.As(err, &kind):
		return &fault{what: fmt.Sprintf("%s: %v", path, kind), next: "give the path of a regular file."}
	case errors.As(err, &size):
		return &fault{what: fmt.Sprintf("%s is too large: it has more than %d bytes", path, size.Max),
			next: "use search on it, or shell with sed -n '1,100p'."}
	case errors.Is(err, patch.ErrProc):
		return &fault{what: path + " is in /proc, which this tool does not read or change", next: "use shell."}
	case errors.As(err, new(*permission.DeniedError)):
		return &fault{what: err.Error(), next: "go on without it; nobody is asked to allow it."}
	case errors.Is(err, fs.ErrPermission):
		return &fault{what: fmt.Sprintf("%s may not be read: %v", path, err)}
	}
	return &fault{what: err.Error(), next: "check the path with list."}
}

// numbered returns the lines of a file with their numbers.
func numbered(path, content string, first, last *int) (string, error) {
	lines := splitLines(content)
	from, to := 1, len(lines)
	if first != nil {
		from = *first
	}
	if last != nil {
		to = *last
	}
	has := fmt.Sprintf("%s has %s", path, count(len(lines), "line"))
	switch {
	case len(lines) == 0 && first == nil && last == nil:
		return "(the file is empty)", nil
	case from < 1 || last != nil && to < 1:
		return "", &fault{what: "lines are counted from 1", next: fmt.Sprintf("%s; ask for lines from 1 on.", has)}
	case from > len(lines):
		return "", &fault{what: fmt.Sprintf("first_line %d is behind the end: %s", from, has),
			next: "ask for lines within it."}
	case to < from:
		return "", &fault{what: fmt.Sprintf("last_line %d is before first_line %d", to, from),
			next: fmt.Sprintf("%s; ask for a range within it.", has)}
	}
	asked := min(to, len(lines))
	to = min(asked, from+maxLines-1)
	var b strings.Builder
	at := from
	for ; at <= to; at++ {
		line := fmt.Sprintf("%d\t%s\n", at, shortLine(lines[at-1]))
		if b.Len()+len(line) > maxShown {
			break
		}
		b.WriteString(line)
	}
	var notes []string
	if at <= asked {
		notes = append(notes, fmt.Sprintf("lines %d to %d of %d; read on with first_line %d", from, at-1, len(lines),
			at))
	} else if last != nil && *last > len(lines) {
		notes = append(notes, has)
	}
	if at > len(lines) && !strings.HasSuffix(content, "\n") {
		notes = append(notes, "the last line does not end with a newline")
	}
	if strings.Contains(content, "\r\n") {
		notes = append(notes, "lines end with CR LF; edit keeps that")
	}
	if notes != nil {
		b.WriteString("(" + strings.Join(notes, "; ") + ")\n")
	}
	return b.String(), nil
}

// splitLines returns the lines of a text without their ends.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

func shortLine(line string) string {
	if len(line) <= maxLineText {
		return line
	}
	head := text.Head(line, maxLineText)
	return fmt.Sprintf("%s… (%d more bytes)", head, len(line)-len(head))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
