package webaddr_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// An address has one form, which shows all that a request would send.
func ExampleParse() {
	a, err := webaddr.Parse("Docs.Example.com/guide?q=\u202ea b#top")
	fmt.Println(a, err)
	hosts, err := webaddr.ParseHosts([]string{"*.example.com"})
	fmt.Println(hosts.Has(a), err)
	_, err = webaddr.Parse("http://127.1/")
	fmt.Println(err)
	// Output:
	// https://docs.example.com/guide?q=%E2%80%AEa%20b <nil>
	// true <nil>
	// the host is neither a name nor an IPv4 address of four decimal numbers
}
