package appserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/hosts"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// asked is a question, and what its first line says of how far it goes: in a client that cuts messages, and in others
// where that is not the sentence of Codex.
type asked struct {
	question     *elicit.Question
	brief, whole string
}

// long is the longest of everything: no line has room for it.
var long = strings.Repeat("long-", 400)

// firstLines has the questions of each function that makes some, with the longest folders, commands, tools and reaches.
func firstLines(t *testing.T) map[string][]asked {
	exec := func(r approval.Command, brief string) asked {
		r.Cwd, r.Reason, r.Notes, r.Asker = "/"+long, long, []string{long}, long
		if r.Command == nil {
			r.Command = []string{"bash", "-lc", long}
		}
		return asked{r.Question("Codex", "/home/you"), brief, ""}
	}
	patch := func(brief string, paths ...string) asked {
		r := approval.Patch{Cwd: "/" + long, Reason: long, Notes: []string{long}, Asker: long, Changes: map[string]protocol.FileChange{}, Why: map[string]string{}}
		for _, path := range paths {
			r.Changes[path], r.Why[path] = protocol.FileChange{Add: &protocol.FileContent{Content: long}}, long
		}
		return asked{r.Question("Codex", "/home/you"), brief, ""}
	}
	access := func(a protocol.Access, words string) asked {
		a.Folder = "/" + long
		q := (approval.Access{Access: a, Client: long}).Question("codex-mcp", "")
		return asked{q, strings.ToUpper(words[:1]) + words[1:] + ":", "Allow codex-mcp " + words + " in "}
	}
	tool := func(meta map[string]any, brief, whole string) asked {
		meta["codex_approval_kind"] = "mcp_tool_call"
		e := &apptypes.Elicitation{ServerName: long, Message: long, Meta: must.Get(json.Marshal(meta))(t), EnvironmentID: []byte(`"` + long + `"`)}
		return asked{must.Get(toolQuestion(e))(t), brief, whole}
	}
	foreign := func(f *approval.Foreign, err error) asked {
		must.OK(t, err)
		must.Equal(t, "the answer", `{"action":"decline"}`, string(f.Read([]byte(`{"decision":"approved"}`)))) // it approves nothing
		return asked{f.Question(), " asks:", ""}
	}
	full, write := protocol.SandboxDangerFullAccess, protocol.SandboxWorkspaceWrite
	params := must.Get(json.Marshal(map[string]string{"message": long}))(t)
	foreigners := []asked{foreign(approval.ServerQuestion("s", params)), foreign(approval.ModelQuestion(params))}
	patches := []asked{
		patch("Change a file in ", "/"+long+"/a"), patch("Change a file outside of ", "/etc/a"),
		patch("Change 2 files outside of ", "/etc/"+long, "/etc/b"), patch("Change 2 files, 1 outside of ", "/"+long+"/a", "/etc/"+long),
	}
	more := &apptypes.Permissions{Cwd: "/" + long, Reason: long, Permissions: []byte(`{"fileSystem":{"write":["/` + long + `"]}}`)}
	far := &apptypes.Permissions{Cwd: "/", Permissions: []byte(`{}`), EnvironmentID: []byte(`"far"`)}
	return map[string][]asked{
		"approval.Command.Question": {
			exec(approval.Command{}, "Run in /"),
			exec(approval.Command{LeavesSandbox: true}, "Run outside the sandbox, in /"),
			exec(approval.Command{LeavesSandbox: true, Reads: true}, "Read outside of /"),
			exec(approval.Command{NoSandbox: true, Notes: []string{"It may start \"" + long + "\" from /x."}}, "Run without a sandbox, in /"),
			exec(approval.Command{Network: true, Command: []string{networkAccess, "https", long}}, "Network access, in /"),
		},
		"approval.Patch.Question":     patches,
		"approval.patchForm.question": patches,
		"approval.Other.Question": {
			{(approval.Other{Ask: permissionsQuestion(far, "")}).Question("", ""), "Beyond the sandbox, all further commands of this turn:", ""},
		},
		"approval.Access.Question": {
			access(protocol.Access{Mode: full, Policy: "never"}, "full access, no sandbox, no questions"),
			access(protocol.Access{Mode: full, Policy: "untrusted"}, "full access, no sandbox"),
			access(protocol.Access{Beside: []protocol.Overlap{{Folder: "/" + long, Other: "/" + long}}}, "work beside another"),
			access(protocol.Access{Beside: slices.Repeat([]protocol.Overlap{{Folder: "/a", Other: "/"}}, 99)}, "work beside another"),
			access(protocol.Access{Policy: "on-request"}, "full access, no sandbox, no questions"),
			access(protocol.Access{Mode: full, Policy: "never", Network: true, WebSearch: true, Provider: long},
				"full access, no sandbox, no questions, web search, another provider"),
			access(protocol.Access{Mode: write, Network: true, WebSearch: true, Roots: slices.Repeat([]string{"/" + long}, 9999), Provider: long},
				"write access, more folders, the network, web search, another provider"),
		},
		"approval.Network.Question": {
			{(approval.Network{Hostname: "registry.npmjs.org", Command: []string{long}, Cwd: "/" + long}).Question("", ""), "Network, to the host registry.npmjs.org:", "the network, to the host `registry.npmjs.org`?"},
			{(approval.Network{Hostname: strings.Repeat("a.", 49) + "aa", Command: []string{long}, Cwd: "/" + long}).Question("", ""),
				"Network, for what it reads, to the host `a.a.", "Allow the network, to the host `a.a."},
		},
		"approval.Overrule.Question": {
			{(approval.Overrule{Refused: protocol.Refused{Command: []string{long}, Cwd: "/" + long, Reason: long}}).Question("", ""),
				"Runs nothing now, overrules Codex's reviewer, which denied:", "Allow what Codex's reviewer denied: "},
		},
		"approval.newForeign":       foreigners,
		"approval.Foreign.Question": foreigners,
		"appserver.toolQuestion": {
			tool(map[string]any{"tool_name": long, "tool_params": map[string]string{"x": long}}, "Outside the sandbox, a tool of an MCP server:", ", outside the sandbox?"),
			tool(map[string]any{}, "Outside the sandbox, what an MCP server asks:", ", outside the sandbox?"),
		},
		"appserver.permissionsQuestion": {
			{permissionsQuestion(more, long), "Beyond the sandbox, all further commands of this turn:", ""},
			{permissionsQuestion(far, ""), "Beyond the sandbox, all further commands of this turn:", ""},
		},
	}
}

// TestFirstLineSaysHowFar asks every question of this module in a client that cuts messages: its first line says how far an
// approval goes, whatever else has no room.
func TestFirstLineSaysHowFar(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	cuts := elicit.Client{Name: "claude-code", ProtocolVersion: "2025-11-25"}
	must.Equal(t, "the client cuts", true, hosts.CutsMessages(cuts.Name))
	rows := firstLines(t)
	must.Equal(t, "the makers of questions", makers(t), slices.Sorted(maps.Keys(rows)))
	for maker, questions := range rows {
		for _, a := range questions {
			first, _, _ := strings.Cut(a.question.For(cuts, nil).Message, "\n")
			if !strings.Contains(first, a.brief) || plain.Columns(first) > plain.MaxColumns {
				t.Errorf("%s: the first line is %q, want %q", maker, first, a.brief)
			}
			if first, _, _ = strings.Cut(a.question.Message, "\n"); !strings.Contains(first, a.whole) {
				t.Errorf("%s: the first line of all is %.99q, want %q", maker, first, a.whole)
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // of a generic type
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return e.(*ast.Ident).Name
}

// makers returns the functions of the server that make a question, or return one.
func makers(t *testing.T) (all []string) {
	of := func(e ast.Expr) bool {
		if pointer, ok := e.(*ast.StarExpr); ok {
			e = pointer.X
		}
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Question" && s.X.(*ast.Ident).Name == "elicit"
	}
	must.OK(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			name, makes := file.Name.Name+".", false
			if f, ok := decl.(*ast.FuncDecl); ok {
				if f.Recv != nil {
					name += receiver(f.Recv.List[0].Type) + "."
				}
				name += f.Name.Name
				makes = f.Type.Results != nil && slices.ContainsFunc(f.Type.Results.List, func(r *ast.Field) bool { return of(r.Type) })
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				literal, ok := n.(*ast.CompositeLit)
				makes = makes || ok && literal.Type != nil && of(literal.Type)
				return true
			})
			if makes {
				all = append(all, name)
			}
		}
		return nil
	}))
	slices.Sort(all)
	return slices.Compact(all)
}
