package main

func protobufFixtures() []byte { return nil }
func conformFixtures() []byte  { return nil }
