package run_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// TestBatch has words of batch files that cmd.exe would read again.
func TestBatch(t *testing.T) {
	for _, tt := range []struct {
		program, word string
		starts        bool
	}{
		{`C:\bin\npm.cmd`, "test", true}, {`C:\bin\npm.cmd`, "a b (c) 'd' ü=1,2;", true}, {`C:\bin\npm.exe`, `x"&echo &`, true},
		{`C:\bin\npm.cmd`, `x"`, false}, {`C:\bin\npm.CMD`, "a&b", false}, {`C:\bin\npm.bat`, "%PATH%", false}, {`C:\bin\npm.bat. `, "a|b", false},
		{`C:\bin\npm.cmd`, "a<b", false}, {`C:\bin\npm.cmd`, "a>b", false}, {`C:\bin\npm.cmd`, "a^b", false}, {`C:\bin\npm.cmd`, "a!b!", false},
		{`C:\bin\npm.cmd`, "a\nb", false}, {`C:\bin\npm.cmd`, "a\rb", false}, {`C:\a&b\npm.cmd`, "test", false},
	} {
		argv := []string{"npm", tt.word}
		if err := run.CheckBatch("windows", tt.program, argv); (err == nil) != tt.starts {
			t.Errorf("%s %q: %v", tt.program, tt.word, err)
		}
		if err := run.CheckBatch("linux", tt.program, argv); err != nil {
			t.Errorf("%s %q on Linux: %v", tt.program, tt.word, err)
		}
	}
}
