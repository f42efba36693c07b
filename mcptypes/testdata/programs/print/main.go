// Print is what the size of decode is measured against.
package main

import (
	"fmt"
	"os"
)

func main() { fmt.Println(len(os.Args)) }
