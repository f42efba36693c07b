package httpserve_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/httpserve"
)

// Other machines reach a server that does not listen on loopback, which then needs TLS.
func ExampleFlags_Check() {
	for _, listen := range []string{"127.0.0.1:80", "[::1]:80", "localhost:80", "0.0.0.0:80", ":80"} {
		f := httpserve.Flags{Listen: listen}
		fmt.Println(listen, f.Check() == nil)
	}
	// Output:
	// 127.0.0.1:80 true
	// [::1]:80 true
	// localhost:80 true
	// 0.0.0.0:80 false
	// :80 false
}
