package web_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/web"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// A client refuses what is not public before it connects, or looks up a name.
func ExampleClient_Get() {
	a, err := webaddr.Parse("http://169.254.169.254/latest/meta-data/")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = web.New(web.Options{}).Get(context.Background(), a)
	fmt.Println(err)
	// Output: 169.254.169.254 is not on the public web
}
