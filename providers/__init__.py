"""What is known of model providers: who they are, how they are asked, what they charge, how they refuse."""
