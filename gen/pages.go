package main

// specPages says which page of the specification a definition follows.
var specPages = map[string]string{}

// commonFields describes members that mean the same wherever they stand.
var commonFields = map[string]string{}
