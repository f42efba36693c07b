package model_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A client asks a provider, and shows the text of the answer as it arrives.
func Example() {
	provider := providertest.New(providertest.Turn{Text: []string{"Two files ", "changed."}})
	defer provider.Close()
	client := &model.Client{
		Provider: config.Provider{BaseURL: provider.BaseURL()},
		HTTP:     http.DefaultClient,
		Getenv:   func(string) string { return "" },
		MaxBytes: 1 << 20,
	}
	question := protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "What changed?"}}}
	request := &model.Request{Model: "any", Items: []protocol.ResponseItem{question}}
	response, err := client.Stream(context.Background(), request, func(e model.Event) {
		if e.Type == model.TextDelta {
			fmt.Printf("%q\n", e.Text)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(response.Items), "item")
	// Output:
	// "Two files "
	// "changed."
	// 1 item
}
