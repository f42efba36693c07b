package workerlink_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/go-json-experiment/json"
)

// A worker reports with one line for each thing that happens.
func ExampleStatus() {
	for _, s := range []workerlink.Status{
		{Ready: true},
		{Observed: &workerlink.Observation{Kind: workerlink.KindEnd}},
		{Error: "no engine"},
	} {
		line, err := json.Marshal(s)
		fmt.Printf("%s %v\n", line, err)
	}
	// Output:
	// {"ready":true} <nil>
	// {"observed":{"kind":"end"}} <nil>
	// {"error":"no engine"} <nil>
}
