package tool

import (
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The file tools are for models that fail with patches and pipes of the shell. They run in this
// program, so each is judged and confined as a command that does the same, and changes are
// patches.
var fileKinds = []kind{
	{model.Tool{Name: "read", Description: "Returns the lines of a text file, each after its number and a tab.",
		Parameters: []byte(`{"type":"object","properties":{
"path":{"type":"string","description":"The file, relative to the working folder"},
"first_line":{"type":"integer","description":"1 by default"},
"last_line":{"type":"integer","description":"By default as many as fit"}
},"required":["path"],"additionalProperties":false}`)}, true, (*Turn).read},
	{model.Tool{Name: "list", Description: "Lists a folder, or finds files by name. Folders end in a slash.",
		Parameters: []byte(`{"type":"object","properties":{
"path":{"type":"string","description":"The folder, the working folder by default"},
"pattern":{"type":"string","description":"Finds the files below the folder that match, such as *.go or src/**/*.ts; ignored files are left out"}
},"additionalProperties":false}`)}, true, (*Turn).list},
	{model.Tool{Name: "search", Description: "Finds the lines that match a regular expression, as PATH:LINE:TEXT. " +
		"Files that git ignores are left out.",
		Parameters: []byte(`{"type":"object","properties":{
"pattern":{"type":"string","description":"The regular expression (RE2)"},
"path":{"type":"string","description":"A folder or file, the working folder by default"},
"files":{"type":"string","description":"Only files that match, such as *.go"}
},"required":["pattern"],"additionalProperties":false}`)}, true, (*Turn).search},
	{model.Tool{Name: "edit", Description: "Replaces text in a file. The user may be asked first.",
		Parameters: []byte(`{"type":"object","properties":{
"path":{"type":"string"},
"old":{"type":"string","description":"The text to replace, exactly as in the file, without line numbers, with enough lines around it to be unique"},
"new":{"type":"string","description":"The text in its place"},
"all":{"type":"boolean","description":"True to replace every occurrence"}
},"required":["path","old","new"],"additionalProperties":false}`)}, true, (*Turn).edit},
	{model.Tool{Name: "write", Description: "Creates a file, or replaces the whole content of one that you have read.",
		Parameters: []byte(`{"type":"object","properties":{
"path":{"type":"string"},
"content":{"type":"string","description":"The whole content, with a newline at its end"}
},"required":["path","content"],"additionalProperties":false}`)}, true, (*Turn).write},
}

// A fault is a mistake of the model in a call: what is wrong, and what to do next.
type fault struct {
	what string
	// quotes is what the answer shows of files and folders, which the model may not read in
	// every case. It follows what.
	quotes string
	next   string
}

// Error implements error.
func (f *fault) Error() string { return f.text(true) }

// text returns the answer, without the quotes if they must not be shown.
func (f *fault) text(quotes bool) string {
	text := f.what
	if quotes && f.quotes != "" {
		text += "\n" + strings.TrimSuffix(f.quotes, "\n")
	}
	if f.next != "" {
		text += "\nNext: " + f.next
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// fileArguments decodes the arguments of a file tool. required are names that must be there, and
// known are all of them.
func fileArguments(call Call, to any, known string, required ...string) error {
	if err := decodeArguments(call.Arguments, to); err != nil {
		return &fault{what: err.Error(), next: "call " + call.Name + " again with " + known + "."}
	}
	var have map[string]jsontext.Value
	_ = json.Unmarshal([]byte(call.Arguments), &have) // an object, as it was just read, or nothing
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !slices.Contains(strings.Split(known, ", "), name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	for _, name := range required {
		if value, ok := have[name]; ok && value.Kind() != jsontext.KindNull {
			continue
		}
		what := fmt.Sprintf("failed to parse function arguments: %s: missing", name)
		if unknown != nil {
			what += "; the call has " + strings.Join(unknown, ", ") + ", which " + call.Name + " does not know"
		}
		return &fault{what: what, next: "call " + call.Name + " again with " + known + "."}
	}
	return nil
}

// words returns what the user is shown of a call that reads.
func words(argv ...string) []string {
	return slices.DeleteFunc(argv, func(word string) bool { return word == "" })
}

// at returns the absolute path of a path of a call.
func (t *Turn) at(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(t.Cwd, path)
}

// near is at for a path that is opened, with the names that are there. It fails for one that leads to the network or to
// a device.
func (t *Turn) near(path string) (string, error) {
	path = t.at(path)
	if err := paths.Near(path, t.Cwd); err != nil {
		return path, err
	}
	return paths.Existing(path), nil
}

// known returns the name by which the conversation remembers a file of a call.
func (t *Turn) known(path string) string {
	path, _ = t.near(path) // what cannot be opened is not read
	return path
}

// judgeLook decides about a call that only reads, as about a command that is known to be safe. Look runs
// a function that only reads within the limits of a command. It is nil unless the call may run without a question.
// Near is true for a function that reads nothing outside of the working folder.
func (t *Turn) judgeLook(near bool) (verdict decide.Verdict, look func(f func() error) error) {
	verdict, c := t.judge(decide.Input{Reads: true, Near: near})
	switch {
	case c != nil:
		return verdict, c.Read
	case verdict.Action == decide.Run:
		return verdict, unconfined
	}
	return verdict, nil
}

func unconfined(f func() error) error { return f() }

// bound returns the working folder without links, if a path of a call leads into it. Else it is "".
func (t *Turn) bound(path string) string {
	work, err := t.box.folder(t.Cwd)
	path, failed := t.near(path)
	if err != nil || failed != nil {
		return ""
	}
	follow := func(path string) (string, error) {
		real, _, err := paths.Follow(path, func(_ string, info fs.FileInfo) error {
			if info.Mode()&fs.ModeIrregular != 0 { // a junction of Windows, which is no link
				return errElsewhere
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) && real != "" {
			err = nil
		}
		return real, err
	}
	cwd, err := follow(t.Cwd)
	real, failed := follow(path)
	if err != nil || failed != nil || !paths.Below(real, cwd) {
		return ""
	}
	return work.Real
}

// look runs a call that only reads, and asks the user first where a command would need that, unless path
// leads into the working folder. Argv is what the user sees of the call. F opens nothing outside of bound,
// unless that is "". Its error is the answer to the model. Without parsed there are no events of a command, because the
// call has one of its own.
func (t *Turn) look(
	ctx context.Context, call Call, path string, argv []string, parsed *protocol.ParsedCommand,
	f func(bound string) (string, error),
) (Result, error) {
	bound := t.bound(path)
	verdict, look := t.judgeLook(bound != "")
	if look == nil {
		bound = ""
		if verdict.Action != decide.Ask {
			return Result{Output: t.refuse(protocol.Refused{Command: argv, Reason: verdict.Reason, CallID: call.ID})},
				nil
		}
		out := t.Host.Ask(ctx, approval.Command{
			CallID: call.ID, Command: argv, Cwd: t.Cwd, Reason: verdict.Reason, FromEngine: true, Once: true,
			LeavesSandbox: t.SandboxPolicy.Mode != protocol.SandboxDangerFullAccess,
			NoSandbox:     t.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess,
			Reads:         true,
		})
		if refusal, err := readOutcome("the command was not run", out); err != nil || refusal != "" {
			return Result{Output: refusal}, err
		}
		if out.Confined {
			return Result{Output: "not run: it may run only in the sandbox, which is not possible"}, nil
		}
		look = unconfined
	}
	if err := t.Acting(); err != nil {
		return Result{}, err
	}
	if parsed != nil {
		t.Host.Emit(protocol.ExecCommandBegin{CallID: call.ID, Command: argv, Cwd: t.Cwd,
			ParsedCmd: []protocol.ParsedCommand{*parsed}, ReadOnly: true})
	}
	var text string
	err := look(func() (err error) {
		text, err = f(bound)
		return err
	})
	end := protocol.ExecCommandEnd{CallID: call.ID}
	if err != nil {
		text, end.ExitCode = err.Error(), 1
	}
	text = strings.ToValidUTF8(text, "\uFFFD") // an error may have any name
	end.AggregatedOutput, end.FormattedOutput, end.Stdout = text, text, text
	if err != nil {
		end.Stdout, end.Stderr = "", text
	}
	if parsed != nil {
		t.Host.Emit(end)
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return Result{Output: text}, nil
}
