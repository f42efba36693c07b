package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{"-finish -search mcp-server", "mcp-server --finish --search"},
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

// FuzzArrange checks that arrange only adds the second dash of flags and moves arguments,
// that it does not change an arranged line, and that parse accepts or refuses every line.
func FuzzArrange(f *testing.F) {
	for _, line := range []string{
		"-m\no3\nmcp-server\n-ca=b", "ask\n--\n-x", "-engine\nnative\n-config=a=b\nmcp\nserve", "-\n--\n---\n-=\n--=\n", "-é\n\n\x00",
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
	})
}
