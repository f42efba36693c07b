package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// maxTokens bounds the list of the tools: a model has it before it has done
// anything, and in each session.
const maxTokens = 3000

// TestToolsListIsShort counts what the list of all tools costs a model.
func TestToolsListIsShort(t *testing.T) {
	cmd := exec.Command(ours(t)[0], "-engine", "native")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(answer.Result.Tools) < 6 {
		t.Fatalf("%d tools, not all: %s", len(answer.Result.Tools), out)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, tool := range answer.Result.Tools {
		n, err := codec.Count(string(tool))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
		var named struct{ Name string }
		if err := json.Unmarshal(tool, &named); err != nil {
			t.Fatal(err)
		}
		t.Logf("%5d %s", n, named.Name)
	}
	if t.Logf("%5d", sum); sum > maxTokens {
		t.Errorf("%d tokens, want at most %d", sum, maxTokens)
	}
}
