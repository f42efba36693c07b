package providertest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// A provider whose answer repeats what the last tool printed.
func Example() {
	provider := providertest.New(providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
		return providertest.Say("the tool said " + r.LastToolOutput())
	}})
	defer provider.Close()

	resp, err := http.Post(provider.BaseURL()+"/chat/completions", "application/json", strings.NewReader(
		`{"model":"any","messages":[{"role":"tool","tool_call_id":"c1","content":"hello"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	stream, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(string(stream), "the tool said hello"))
	fmt.Println(provider.Requests()[0].Model())
	// Output:
	// true
	// any
}
