from evalr_reflexio.places import open_store
