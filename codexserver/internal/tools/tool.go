package tools

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// all are the tools, in the order in which clients see them.
var all = []*tool{codexTool, replyTool, waitTool, showTool, reviewTool, listTool, interruptTool, modelsTool}

// tool is one tool.
type tool struct {
	// name, title, description and hints are for clients.
	name, title, description string
	hints                    *mcptypes.ToolAnnotations
	// result returns the schema of a result. Nil is none.
	result func() *schema
	// purpose says what the tool is for in the server's instructions.
	purpose string
	// turn is true for a tool that runs a turn, which may take long, and short for one that never takes long.
	turn, short bool
	// offered reports whether a server has the tool. Nil is always.
	offered func(*Table) bool
	// open is true for a tool that ignores unknown arguments, but not its own misspelt: Codex's codex-reply does,
	// codex-interrupt takes the same old names, and some hosts send one to a tool without any.
	open bool
	// unsaid are arguments that clients do not see. about has names, each with a description in place of that of the type.
	unsaid, about []string

	// arguments returns the arguments of a call before they are read. Their type has the schema.
	arguments func() arguments

	once  sync.Once // guards whole, see [tool.input]
	whole *schema
}

// works and reads are the hints of several tools.
var (
	yes, no = true, false

	works = mcptypes.ToolAnnotations{ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &yes}
	reads = mcptypes.ToolAnnotations{ReadOnlyHint: &yes, OpenWorldHint: &no}
)

// arguments are those of a call, decoded and checked.
type arguments interface {
	// run runs the tool, and returns the result of the call, or the error without the name of the tool. The server
	// checks before that it has room for a turn.
	run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error)
}

// find returns the tool of a list with a name, or one without a name.
func find(list []*tool, name string) *tool {
	if i := slices.IndexFunc(list, func(one *tool) bool { return one.name == name }); i >= 0 {
		return list[i]
	}
	return &tool{}
}

// IsTurn reports whether a tool runs a turn, which may take long.
func IsTurn(name string) bool { return find(all, name).turn }

// IsShort reports whether calls of a tool never take long.
func IsShort(name string) bool { return find(all, name).short }

// Reads reports whether calls of a tool only read what the server has.
func Reads(name string) bool {
	one := find(all, name)
	return one.name != "" && !one.turn && *one.hints.ReadOnlyHint
}

// read decodes and checks the arguments of a call, of which those in locked may not be chosen. The error names
// an argument. Arguments with a method check have rules besides their schema.
func (t *tool) read(raw stdjson.RawMessage, locked []string) (arguments, error) {
	value, err := t.input().read("", jsontext.Value(cmp.Or(string(raw), "{}")), locked)
	if err != nil {
		return nil, err
	}
	a := t.arguments()
	err = json.Unmarshal(value, a)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer != "" { // what fits the schema
		return nil, fmt.Errorf("argument %s: the number is out of range, or written with a fraction", wrong.JSONPointer)
	}
	if err != nil {
		return nil, err
	}
	if checked, ok := a.(interface{ check() error }); ok {
		return a, checked.check()
	}
	return a, nil
}
