package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestArrange(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"", ""},
		{"mcp-server", "mcp-server"},
		{"-m o3 mcp-server", "mcp-server -m o3"},
		{"-m o3 mcp serve -c a=b", "mcp -m o3 serve -c a=b"},
		{"-m mcp-server ask why", "ask -m mcp-server why"},
		{"-engine native -log debug", "--engine native --log debug"},
		{"-engine=native --trace f", "--engine=native --trace f"},
		{"-resume last ask go on", "ask --resume last go on"},
		{"ask -json why", "ask --json why"},
		{"-json ask why", "ask --json why"},
		{"-config a=b -cwd /x -cd=/x", "--config a=b --cwd /x --cd=/x"},
		{"-ca=b -c=a=b -c a=b", "-ca=b -c=a=b -c a=b"},
		{"-codex=/x -cmodel=o3 -ccodex=x", "--codex=/x -cmodel=o3 -ccodex=x"},
		{"-mo3 -sread-only", "-mo3 -sread-only"},
		{"-m -json ask", "ask -m -json"},
		{"--trace -log ask", "ask --trace -log"},
		{"-c", "-c"},
		{"-log", "--log"},
		{"-V -h -help -version", "-V -h --help --version"},
		{"-shared -search mcp-server", "mcp-server --shared --search"},
		{"-i pic.png mcp-server", "mcp-server -i pic.png"},
		{"-nosuch value ask", "value -nosuch ask"},
		{"---log x", "x ---log"},
		{"-=x -", "- -=x"},
		{"ask - -m x", "ask - -m x"},
		{"ask -- -m -json", "ask -- -m -json"},
		{"-m x -- ask -resume last", "ask -m x -- -resume last"},
		{"-c --", "-c --"},
		{"--", "--"},
		{"-- --yolo ask", "-- --yolo ask"},
		{"__complete ask -res", "__complete ask -res"},
	} {
		all := allFlags((&options{name: "codex-mcp"}).commands())
		got := strings.Join(arrange(strings.Fields(tt.line), all), " ")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

// commands builds the whole tree of commands.
func (o *options) commands() *cobra.Command {
	root, settings, server := o.rootCommand()
	o.addCommands(root, settings, server)
	return root
}

// TestStartsServer checks which command lines need no other commands, and that they mean the
// same as with all of them.
func TestStartsServer(t *testing.T) {
	for _, tt := range []struct {
		line          string
		named, starts bool
	}{
		{"", false, true},
		{"mcp-server", true, true},
		{"-c a=b mcp-server -m gpt-5 -s read-only -cwd /x", true, true},
		{"-m mcp-server -V", false, true},
		{"--yolo -i pic.png --search mcp-server", true, true},
		{"-engine nosuch", false, true},
		{"mcp-server -engine", true, true},
		{"mcp-server mcp-server", false, false},
		{"mcp", false, false},
		{"mcp-serve", false, false},
		{"help", false, false},
		{"help mcp-server", false, false},
		{"mcp-server help", false, false},
		{"-h", false, false},
		{"mcp-server --help", false, false},
		{"-engine native -help", false, false},
		{"-json", false, false},
		{"-attach x", false, false}, // not -a with the value ttach
		{"-cmodel=o3", false, false},
		{"-Vh", false, false},
		{"--nosuch", false, false},
		{"---log x", false, false},
		{"-=x", false, false},
		{"-", false, false},
		{"--", false, false},
		{"-m x --", false, false},
		{"__complete mcp-server", false, false},
	} {
		args := strings.Fields(tt.line)
		root, _, _ := (&options{name: "codex-mcp"}).rootCommand()
		named, starts := startsServer(args, allFlags(root))
		if named != tt.named || starts != tt.starts {
			t.Errorf("%s: named %v, starts %v", tt.line, named, starts)
		}
		compareWhole(t, args)
	}
}

// compareWhole checks that parse takes a command line as the whole tree of commands does.
func compareWhole(t *testing.T, args []string) {
	t.Helper()
	if completing(args) {
		return
	}
	for _, name := range []string{"codex-mcp", "codex"} {
		got, gotErr := parse(name, args, io.Discard, io.Discard)
		want := &options{name: name}
		root := want.commands()
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(arrange(args, allFlags(root)))
		wantErr := root.Execute()
		if wantErr == nil && want.refusals != nil {
			wantErr = errors.New(strings.Join(want.refusals, "\n"))
		}
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Errorf("%s %q: %v, want %v", name, args, gotErr, wantErr)
		}
		if gotErr != nil || wantErr != nil {
			continue
		}
		if (got.run == nil) != (want.run == nil) {
			t.Errorf("%s %q: run %v, want %v", name, args, got.run != nil, want.run != nil)
		}
		got.run, want.run = nil, nil // functions are never equal
		got.http = want.http         // has defaults that only its command uses
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s %q: %+v, want %+v", name, args, got, want)
		}
	}
}

// FuzzArrange checks that arrange only adds the second dash of flags and moves arguments,
// that it does not change an arranged line, and that parse takes every line as the whole tree of
// commands does.
func FuzzArrange(f *testing.F) {
	for _, line := range []string{
		"-m\no3\nmcp-server\n-ca=b", "ask\n--\n-x", "mcp-server\n-attach\n-h\n-c\nx", "-engine\nnative\n-config=a=b\nmcp\nserve", "-\n--\n---\n-=\n--=\n", "-é\n\n\x00",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		all := allFlags((&options{name: "codex-mcp"}).commands())
		got := arrange(args, all)
		undashed := func(args []string) []string {
			out := slices.Clone(args)
			for i, a := range out {
				if strings.HasPrefix(a, "--") && len(a) > 2 {
					out[i] = a[1:]
				}
			}
			slices.Sort(out)
			return out
		}
		if diff := cmp.Diff(undashed(args), undashed(got)); diff != "" {
			t.Errorf("%q became %q:\n%s", args, got, diff)
		}
		if again := arrange(got, all); !slices.Equal(got, again) {
			t.Errorf("%q became %q and then %q", args, got, again)
		}
		if o, err := parse("codex-mcp", args, io.Discard, io.Discard); (o == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", args, o, err)
		}
		compareWhole(t, args)
	})
}
