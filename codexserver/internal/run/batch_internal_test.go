package run

import (
	"os/exec"
	"testing"
)

// TestBatch has words of batch files that cmd.exe would read again.
func TestBatch(t *testing.T) {
	for _, tt := range []struct {
		program, word string
		starts        bool
	}{
		{`C:\bin\npm.cmd`, "test", true},
		{`C:\bin\npm.cmd`, "a b (c) 'd' ü=1,2;", true},
		{`C:\bin\npm.exe`, `x"&echo &`, true},
		{`C:\bin\npm.cmd`, `x"`, false},
		{`C:\bin\npm.CMD`, "a&b", false},
		{`C:\bin\npm.bat`, "%PATH%", false},
		{`C:\bin\npm.bat. `, "a|b", false},
		{`C:\bin\npm.cmd`, "a<b", false},
		{`C:\bin\npm.cmd`, "a>b", false},
		{`C:\bin\npm.cmd`, "a^b", false},
		{`C:\bin\npm.cmd`, "a!b!", false},
		{`C:\bin\npm.cmd`, "a\nb", false},
		{`C:\bin\npm.cmd`, "a\rb", false},
		{`C:\a&b\npm.cmd`, "test", false},
	} {
		cmd := &exec.Cmd{Path: tt.program, Args: []string{"npm", tt.word}}
		if err := checkBatch("windows", cmd); (err == nil) != tt.starts {
			t.Errorf("%s %q: %v", tt.program, tt.word, err)
		}
		if err := checkBatch("linux", cmd); err != nil {
			t.Errorf("%s %q on Linux: %v", tt.program, tt.word, err)
		}
	}
}
