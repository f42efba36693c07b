package interop

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// maxTokens bounds the list of the tools, which costs a model that much in each session
// before it has done anything.
const maxTokens = 3000

// TestToolsListIsShort counts what the list of all tools costs a model.
func TestToolsListIsShort(t *testing.T) {
	t.Parallel()
	for _, e := range engines(t) {
		if e.is == "native" && e.over != overHTTP {
			t.Run(e.name, func(t *testing.T) { countTokens(t, e) })
		}
	}
}

func countTokens(t *testing.T, e engine) {
	cmd := e.open(t, ours(t), newHome(t, silentModel(t), e.wire), t.TempDir()).command(t.Context())
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
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
