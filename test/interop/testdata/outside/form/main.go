// Command form asks for a value with a form, and reads it from the answer.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/elicit"
)

func main() {
	person := elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"environment":"test"}}`), nil
	})
	form := &elicit.Question{
		Message: "Where to?",
		Schema: json.RawMessage(`{"type":"object","properties":{"environment":{"type":"string","enum":["test",` +
			`"live"]}}}`),
	}
	asker := elicit.NewAsker(person, elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}, nil)
	out := asker.Ask(context.Background(), form)
	fmt.Println(out.Decision, out.Values["environment"])
}
