package appserver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
)

func Example() {
	e, err := appserver.New(&appserver.Options{Path: "./no/codex/here"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	report := e.Check(context.Background())
	var missing *appserver.NotFoundError
	switch {
	case report.Usable():
		fmt.Println("codex", report.Version)
	case errors.As(report.Err, &missing):
		fmt.Println("there is no", missing.Path)
	default:
		fmt.Println(report.Problem)
	}
	// Output: there is no ./no/codex/here
}
