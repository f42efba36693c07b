package shellword_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/shellword"
)

func Example() {
	line := shellword.Join([]string{"echo", "it's", "a b"})
	fmt.Println(line)
	words, ok := shellword.Split(line)
	fmt.Printf("%q %t\n", words, ok)
	// Output:
	// echo "it's" 'a b'
	// ["echo" "it's" "a b"] true
}
